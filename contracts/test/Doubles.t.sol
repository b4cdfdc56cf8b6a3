// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {FaultyCore} from "../src/doubles/FaultyCore.sol";
import {ForeignCore} from "../src/doubles/ForeignCore.sol";
import {Multicall3} from "../src/doubles/Multicall3.sol";
import {Vm, World} from "./World.sol";

/// The stand-ins of the local chain behave as what they stand for.
contract DoublesTest is World {
    function test_multicallAnswersAsTheRegistryDoes() public {
        Multicall3 multicall = new Multicall3();
        require(multicall.aggregate3.selector == 0x82ad56cb, "the well-known selector");
        mint();
        Multicall3.Call3[] memory calls = new Multicall3.Call3[](3);
        calls[0] = Multicall3.Call3(address(registry), true, abi.encodeCall(registry.getAsset, (1)));
        calls[1] = Multicall3.Call3(address(registry), true, abi.encodeCall(registry.ownerOf, (2)));
        calls[2] = Multicall3.Call3(address(registry), false, abi.encodeCall(registry.getAsset, (2)));
        Multicall3.Result[] memory results = multicall.aggregate3(calls);
        require(results[0].success && !results[1].success && results[2].success, "success");
        require(results[0].returnData.length == 160 && bytes32(results[0].returnData) != 0, "a record");
        require(results[2].returnData.length == 160 && bytes32(results[2].returnData) == 0, "no record");
        calls[1].allowFailure = false;
        try multicall.aggregate3(calls) {
            revert("a call that may not fail takes the batch with it");
        } catch Error(string memory reason) {
            require(keccak256(bytes(reason)) == keccak256("Multicall3: call failed"), "reason");
        }
    }

    /// The same topics and data as the registry's, so that one reader serves both.
    function test_foreignCoreSpeaksTheSameEvents() public {
        ForeignCore foreign = new ForeignCore();
        vm.recordLogs();
        uint256 id = mint();
        does(binder, abi.encodeCall(registry.bindTag, (id, METADATA)));
        Vm.Log[] memory ours = vm.getRecordedLogs();
        vm.recordLogs();
        vm.prank(issuer);
        foreign.mint(maker, id, METADATA);
        vm.prank(binder);
        foreign.bindTag(id, METADATA);
        Vm.Log[] memory theirs = vm.getRecordedLogs();
        require(ours.length == 6 && theirs.length == 5, "all but Locked");
        for (uint256 i = 0; i < theirs.length; ++i) {
            Vm.Log memory mine = ours[i < 3 ? i : i + 1];
            require(keccak256(abi.encode(mine.topics, mine.data)) == keccak256(abi.encode(theirs[i].topics, theirs[i].data)));
        }
        (address holder, uint64 time, uint8 state,,) = foreign.getAsset(id);
        require(holder == maker && time == START && state == 2 && foreign.getTokenByTag(METADATA) == id, "reads");
    }

    function test_foreignCoreLacksOurOwnReads() public {
        ForeignCore foreign = new ForeignCore();
        require(foreign.supportsInterface(0x80ac58cd), "ERC-721");
        require(!foreign.supportsInterface(0x6c6458f1) && !foreign.supportsInterface(0xeac8f5b8), "nothing else");
        (bool success,) = address(foreign).staticcall(abi.encodeCall(registry.getAssets, (new uint256[](0))));
        require(!success, "no getAssets");
        (success,) = address(foreign).staticcall(abi.encodeCall(registry.metadataHash, (1)));
        require(!success, "no metadataHash");
    }

    function testFuzz_foreignCoreTakesAnyRecord(uint256 id, address holder, uint64 time, uint8 state, uint8 flags)
        public
    {
        ForeignCore foreign = new ForeignCore();
        foreign.setAsset(id, holder, time, state, flags, 7);
        bytes memory expected = abi.encode(holder, time, state, flags, uint16(7));
        (, bytes memory found) = address(foreign).staticcall(abi.encodeCall(foreign.getAsset, (id)));
        require(keccak256(found) == keccak256(expected), "as set");
        foreign.setFlags(id, 1);
        foreign.resell(id, owner);
        (address newHolder,,, uint8 newFlags,) = foreign.getAsset(id);
        require(newHolder == owner && newFlags == 1, "resold");
    }

    function testFuzz_faultyCoreAnswersAnyBytes(bytes calldata answer, uint256 id) public {
        FaultyCore faulty = new FaultyCore();
        faulty.setAnswer(registry.getAsset.selector, answer);
        (bool success, bytes memory found) = address(faulty).staticcall(abi.encodeCall(registry.getAsset, (id)));
        require(success && keccak256(found) == keccak256(answer), "the bytes, no more and no less");
        (success, found) = address(faulty).staticcall(abi.encodeCall(registry.metadataHash, (id)));
        require(success && found.length == 0, "empty where nothing was set");
    }
}
