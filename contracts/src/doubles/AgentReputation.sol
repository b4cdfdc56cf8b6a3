// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC721} from "@openzeppelin/contracts/token/ERC721/IERC721.sol";

/// The Reputation registry of ERC-8004 for a local chain: fixed code, and only what is used there.
/// Left out: responses to feedback, and reading all of it at once.
contract AgentReputation {
    struct Feedback {
        int128 value;
        uint8 valueDecimals;
        bool isRevoked;
        string tag1;
        string tag2;
    }

    uint8 private constant MOST_DECIMALS = 18;

    IERC721 private immutable _identityRegistry;
    mapping(uint256 agentId => address[]) private _clients;
    /// The feedback of one client is counted from 1.
    mapping(uint256 agentId => mapping(address client => Feedback[])) private _feedback;

    event NewFeedback(
        uint256 indexed agentId,
        address indexed clientAddress,
        uint64 feedbackIndex,
        int128 value,
        uint8 valueDecimals,
        string indexed indexedTag1,
        string tag1,
        string tag2,
        string endpoint,
        string feedbackURI,
        bytes32 feedbackHash
    );
    event FeedbackRevoked(uint256 indexed agentId, address indexed clientAddress, uint64 indexed feedbackIndex);

    constructor(address identityRegistry) {
        _identityRegistry = IERC721(identityRegistry);
    }

    function getIdentityRegistry() external view returns (address) {
        return address(_identityRegistry);
    }

    function giveFeedback(
        uint256 agentId,
        int128 value,
        uint8 valueDecimals,
        string memory tag1,
        string memory tag2,
        string memory endpoint,
        string memory feedbackURI,
        bytes32 feedbackHash
    ) external {
        require(valueDecimals <= MOST_DECIMALS, "too many decimals");
        _requireOutsider(agentId);
        uint64 index = _keep(agentId, Feedback(value, valueDecimals, false, tag1, tag2));
        emit NewFeedback(
            agentId,
            msg.sender,
            index,
            value,
            valueDecimals,
            tag1,
            tag1,
            tag2,
            endpoint,
            feedbackURI,
            feedbackHash
        );
    }

    function revokeFeedback(uint256 agentId, uint64 feedbackIndex) external {
        Feedback storage given = _at(agentId, msg.sender, feedbackIndex);
        require(!given.isRevoked, "Already revoked");
        given.isRevoked = true;
        emit FeedbackRevoked(agentId, msg.sender, feedbackIndex);
    }

    function getClients(uint256 agentId) external view returns (address[] memory) {
        return _clients[agentId];
    }

    function getLastIndex(uint256 agentId, address clientAddress) external view returns (uint64) {
        return uint64(_feedback[agentId][clientAddress].length);
    }

    function readFeedback(uint256 agentId, address clientAddress, uint64 feedbackIndex)
        external
        view
        returns (int128 value, uint8 valueDecimals, string memory tag1, string memory tag2, bool isRevoked)
    {
        Feedback storage given = _at(agentId, clientAddress, feedbackIndex);
        return (given.value, given.valueDecimals, given.tag1, given.tag2, given.isRevoked);
    }

    /// The average of what was not revoked, in the decimals that most of it has; cut off, not rounded. An empty tag is any tag.
    function getSummary(uint256 agentId, address[] calldata clientAddresses, string calldata tag1, string calldata tag2)
        external
        view
        returns (uint64 count, int128 summaryValue, uint8 summaryValueDecimals)
    {
        require(clientAddresses.length > 0, "clientAddresses required");
        uint64[MOST_DECIMALS + 1] memory counts;
        int256 sum;
        for (uint256 i = 0; i < clientAddresses.length; ++i) {
            Feedback[] storage given = _feedback[agentId][clientAddresses[i]];
            for (uint256 j = 0; j < given.length; ++j) {
                Feedback storage one = given[j];
                if (one.isRevoked || !_matches(tag1, one.tag1) || !_matches(tag2, one.tag2)) continue;
                sum += int256(one.value) * _power(MOST_DECIMALS - one.valueDecimals);
                counts[one.valueDecimals]++;
                count++;
            }
        }
        if (count == 0) return (0, 0, 0);
        for (uint8 decimals = 1; decimals <= MOST_DECIMALS; ++decimals) {
            if (counts[decimals] > counts[summaryValueDecimals]) summaryValueDecimals = decimals;
        }
        int256 average = sum / int256(uint256(count)) / _power(MOST_DECIMALS - summaryValueDecimals);
        summaryValue = int128(average); // no larger than the largest value in it
    }

    /// Reverts for an unknown agent too.
    function _requireOutsider(uint256 agentId) private view {
        address owner = _identityRegistry.ownerOf(agentId);
        require(
            msg.sender != owner && !_identityRegistry.isApprovedForAll(owner, msg.sender)
                && _identityRegistry.getApproved(agentId) != msg.sender,
            "Self-feedback not allowed"
        );
    }

    function _keep(uint256 agentId, Feedback memory one) private returns (uint64 index) {
        Feedback[] storage given = _feedback[agentId][msg.sender];
        if (given.length == 0) _clients[agentId].push(msg.sender);
        given.push(one);
        return uint64(given.length);
    }

    function _at(uint256 agentId, address client, uint64 index) private view returns (Feedback storage) {
        require(index > 0, "index must be > 0");
        require(index <= _feedback[agentId][client].length, "index out of bounds");
        return _feedback[agentId][client][index - 1];
    }

    function _matches(string calldata wanted, string memory found) private pure returns (bool) {
        return bytes(wanted).length == 0 || keccak256(bytes(wanted)) == keccak256(bytes(found));
    }

    function _power(uint8 exponent) private pure returns (int256) {
        return int256(10 ** uint256(exponent));
    }
}
