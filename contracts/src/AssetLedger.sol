// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC165} from "@openzeppelin/contracts/utils/introspection/IERC165.sol";
import {IERC4906} from "@openzeppelin/contracts/interfaces/IERC4906.sol";
import {IERC5267} from "@openzeppelin/contracts/interfaces/IERC5267.sol";
import {IERC721} from "@openzeppelin/contracts/token/ERC721/IERC721.sol";
import {IERC721Metadata} from "@openzeppelin/contracts/token/ERC721/extensions/IERC721Metadata.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {ERC165} from "@openzeppelin/contracts/utils/introspection/ERC165.sol";
import {Strings} from "@openzeppelin/contracts/utils/Strings.sol";
import {IAssetRegistry} from "./IAssetRegistry.sol";
import {NONE} from "./Lifecycle.sol";

/// The storage of the registry and everything that reads it (spec §2.5).
/// The ERC-721 core is written out, because a token's whole record has to fit in one slot.
abstract contract AssetLedger is IAssetRegistry, IERC721Metadata, IERC4906, ERC165, EIP712 {
    /// One slot, bit 0 lowest: owner 0-159, timestamp 160-223, state 224-231, flags 232-239, reserved 240-255.
    struct Asset {
        address owner;
        /// Second of the last change of this record, ownership included.
        uint64 timestamp;
        uint8 state;
        uint8 flags;
        /// Low byte: the state before FLAGGED. High byte: the layout of the record, 0.
        uint16 reserved;
    }

    struct Pending {
        address to;
        uint64 expiry;
        uint32 nonce;
    }

    /// Counted ids end far below the refused ones near 2^247.
    uint64 internal _lastId;
    uint64 internal _supply;
    /// The highest imported id that the counter could meet.
    uint64 internal _highestImport;
    /// Slot 3, after EIP712 (0, 1) and the counters (2). Storage proofs depend on it: it never moves.
    mapping(uint256 tokenId => Asset) internal _assets;
    mapping(address owner => uint256) internal _balances;
    mapping(bytes32 tagHash => uint256) internal _tokenByTag;
    mapping(uint256 tokenId => bytes32) internal _tagByToken;
    mapping(uint256 tokenId => bytes32) internal _metadataHashes;
    mapping(uint256 tokenId => Pending) internal _pending;
    string internal _tokenBaseURI;
    string internal _contractURI;

    constructor() EIP712("AssetRegistry", "1") {}

    /// The record of a token; all zero for an id that was never minted. Never reverts.
    function getAsset(uint256 tokenId)
        external
        view
        returns (address assetOwner, uint64 timestamp, uint8 state, uint8 flags, uint16 reserved)
    {
        Asset memory asset = _assets[tokenId];
        return (asset.owner, asset.timestamp, asset.state, asset.flags, asset.reserved);
    }

    /// The storage words of many records, in the order asked; zero where nothing was minted.
    function getAssets(uint256[] calldata tokenIds) external view returns (uint256[] memory records) {
        records = new uint256[](tokenIds.length);
        for (uint256 i = 0; i < tokenIds.length; ++i) {
            records[i] = _word(tokenIds[i]);
        }
    }

    /// As getAssets, with the metadata hash beside each record.
    function getAssetsWithMetadata(uint256[] calldata tokenIds)
        external
        view
        returns (uint256[] memory records, bytes32[] memory metadataHashes)
    {
        records = new uint256[](tokenIds.length);
        metadataHashes = new bytes32[](tokenIds.length);
        for (uint256 i = 0; i < tokenIds.length; ++i) {
            records[i] = _word(tokenIds[i]);
            metadataHashes[i] = _metadataHashes[tokenIds[i]];
        }
    }

    /// All that a tap needs; all zero when no token carries the tag.
    function getAssetByTag(bytes32 tagHash)
        external
        view
        returns (uint256 tokenId, uint256 record, bytes32 metadataHash_)
    {
        tokenId = _tokenByTag[tagHash];
        return (tokenId, _word(tokenId), _metadataHashes[tokenId]);
    }

    /// 0 when no token carries the tag.
    function getTokenByTag(bytes32 tagHash) external view returns (uint256) {
        return _tokenByTag[tagHash];
    }

    function getTagByToken(uint256 tokenId) external view returns (bytes32) {
        return _tagByToken[tokenId];
    }

    function metadataHash(uint256 tokenId) external view returns (bytes32) {
        return _metadataHashes[tokenId];
    }

    /// `to` is zero when nothing is pending; `nonce` is the one that the next signature of this token uses.
    function pendingTransfer(uint256 tokenId) external view returns (address to, uint64 expiry, uint32 nonce) {
        Pending memory pending = _pending[tokenId];
        return (pending.to, pending.expiry, pending.nonce);
    }

    function totalSupply() external view returns (uint256) {
        return _supply;
    }

    // ERC-721, ERC-5192, ERC-7572

    function name() external pure returns (string memory) {
        return "Asset Registry";
    }

    function symbol() external pure returns (string memory) {
        return "ASSET";
    }

    function ownerOf(uint256 tokenId) external view returns (address) {
        return _existing(tokenId).owner;
    }

    function balanceOf(address owner) external view returns (uint256) {
        if (owner == address(0)) revert ZeroAddress();
        return _balances[owner];
    }

    function tokenURI(uint256 tokenId) external view returns (string memory) {
        _existing(tokenId);
        if (bytes(_tokenBaseURI).length == 0) return "";
        return string.concat(_tokenBaseURI, Strings.toString(tokenId));
    }

    function contractURI() external view returns (string memory) {
        return _contractURI;
    }

    function locked(uint256 tokenId) external view returns (bool) {
        _existing(tokenId);
        return true;
    }

    function getApproved(uint256 tokenId) external view returns (address) {
        _existing(tokenId);
        return address(0);
    }

    function isApprovedForAll(address, address) external pure returns (bool) {
        return false;
    }

    function approve(address, uint256) external pure {
        revert TransfersLocked();
    }

    function setApprovalForAll(address, bool) external pure {
        revert TransfersLocked();
    }

    function transferFrom(address, address, uint256) external pure {
        revert TransfersLocked();
    }

    function safeTransferFrom(address, address, uint256) external pure {
        revert TransfersLocked();
    }

    function safeTransferFrom(address, address, uint256, bytes calldata) external pure {
        revert TransfersLocked();
    }

    /// The list has each read beyond the standards, so that a reader can ask which of them exist.
    function supportsInterface(bytes4 interfaceId) public view virtual override(ERC165, IERC165) returns (bool) {
        return interfaceId == type(IERC721).interfaceId || interfaceId == type(IERC721Metadata).interfaceId
            || interfaceId == bytes4(0x49064906) // ERC-4906
            || interfaceId == this.locked.selector // ERC-5192
            || interfaceId == this.contractURI.selector // ERC-7572
            || interfaceId == type(IERC5267).interfaceId || interfaceId == this.getAsset.selector
            || interfaceId == this.getAssets.selector || interfaceId == this.getAssetsWithMetadata.selector
            || interfaceId == this.getAssetByTag.selector || super.supportsInterface(interfaceId);
    }

    function _word(uint256 tokenId) private view returns (uint256 word) {
        Asset storage asset = _assets[tokenId];
        assembly ("memory-safe") {
            word := sload(asset.slot)
        }
    }

    function _existing(uint256 tokenId) internal view returns (Asset memory asset) {
        asset = _assets[tokenId];
        if (asset.state == NONE) revert AssetNotFound(tokenId);
    }

    function _inState(uint256 tokenId, uint8 state) internal view returns (Asset memory asset) {
        asset = _existing(tokenId);
        if (asset.state != state) revert WrongState(tokenId, asset.state);
    }

    /// Stores a changed record under a new time. The caller emits what changed.
    function _store(uint256 tokenId, Asset memory asset) internal {
        asset.timestamp = uint64(block.timestamp);
        _assets[tokenId] = asset;
    }

    function _storeState(uint256 tokenId, Asset memory asset, uint8 to, address actor) internal {
        uint8 from = asset.state;
        asset.state = to;
        _store(tokenId, asset);
        emit StateChanged(tokenId, from, to, actor);
    }

    /// Announces a new owner and counts; the record itself is already stored.
    function _handedOver(uint256 tokenId, address from, address to) internal {
        --_balances[from];
        ++_balances[to];
        emit Transfer(from, to, tokenId);
    }
}
